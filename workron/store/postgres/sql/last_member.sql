-- last_member: return the id of a group's last member; its members have the ids from its own to this.
CREATE OR REPLACE FUNCTION workron.last_member(_group bigint, _kind text) RETURNS bigint
LANGUAGE sql STABLE
AS $$
    SELECT CASE _kind
        WHEN 'Workflow' THEN (SELECT last FROM workron.run WHERE id = _group)
        WHEN 'Array' THEN (SELECT id FROM workron.job
                           WHERE group_id = _group AND group_condition = 'Member'
                           ORDER BY index DESC LIMIT 1) END
$$;
